"""Endpoints that one worker serves alone: embeddings, responses, tokenize and what else engines know."""
