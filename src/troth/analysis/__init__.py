"""Reading whole projects: facts of one file, the program they make, rules put to it, findings and their repair."""
