"""Profile what runs anyway: a function, a class, a live object, a loop; and leave it as it was."""
