"""How the tables of the index became what they are; Alembic reads this folder."""
