"""Pure functions on records. `estimate` is the only place where a shown figure is computed."""
