"""What the server does with each message of the client, one module for each kind of message."""
