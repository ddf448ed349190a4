"""Generated files of the repository: each generator is pure, one command writes or checks them all."""
