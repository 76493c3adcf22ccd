"""How fixes are written that several rules share."""
