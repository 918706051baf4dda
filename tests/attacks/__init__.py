"""What an attacker would try, against the real thing."""
