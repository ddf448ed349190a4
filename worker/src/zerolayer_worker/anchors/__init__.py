"""Knowledge anchors: replacement values for a model's norm parameters, as a file."""
