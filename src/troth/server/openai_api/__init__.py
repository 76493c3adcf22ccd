"""What OpenAI's own clients ask for: chat completions, responses and models, over the conversations of a runtime."""
