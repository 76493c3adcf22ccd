"""The frame of every page: head and way around, sign-in, failures, and the parts that pages are made of."""
