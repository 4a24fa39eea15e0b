"""Chart definitions, one kind a file: the page and `speechmeter plot` draw the same ones."""
