"""Compare every finding with a golden record, so that moving code changes nothing by accident.

`python -m tools.same compare` checks the programs that stand in this repository (rule cases, specimens, families, cases
of the mutation operators) against `tests/analysis/golden/programs.jsonl`. With `--trees FOLDER` it checks real projects
instead, as a user does and with awaits removed. `record` writes the record anew. `make same` runs it.
"""
