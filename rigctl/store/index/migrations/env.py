"""How Alembic reaches the index: over the connection that rigctl has opened, never by a configuration of its own."""

from alembic import context

from rigctl.store.index.tables import metadata

context.configure(connection=context.config.attributes["connection"], target_metadata=metadata, render_as_batch=True)
with context.begin_transaction():
    context.run_migrations()
