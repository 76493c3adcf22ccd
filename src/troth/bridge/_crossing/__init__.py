"""How a call crosses from one color to the other: which way it goes, and what it takes along."""
