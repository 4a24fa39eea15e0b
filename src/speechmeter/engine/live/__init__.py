"""How a system is measured while it is spoken to: pace, arrivals, conversations, and what the client itself did."""
