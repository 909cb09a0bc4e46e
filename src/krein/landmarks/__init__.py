"""Which objects stand for all: one selection rule a file behind one small protocol."""
