"""Tell much in few words: by family, once for each cause, and in a line what nobody reads one by one."""
