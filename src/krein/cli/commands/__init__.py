"""One file per command; each has a function `command`, which `group` imports when it is called."""
