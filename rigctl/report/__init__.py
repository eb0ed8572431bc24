"""What people read: terminal, HTML, JSON, JUnit."""
