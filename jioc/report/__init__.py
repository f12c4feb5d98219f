"""Tables, pages and figures from result.json files alone: no torch, no weights."""
