"""Many rigs over SSH: connections, the pool, the agent's delivery."""
