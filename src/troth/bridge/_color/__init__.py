"""What color a callable has, told before it is called."""
