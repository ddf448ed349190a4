"""Container images: what each is made of, and how to build it with and without a container engine."""
