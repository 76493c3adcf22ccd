"""Describe the routes: the OpenAPI document and the reference page that is made from it."""
