"""What eventide costs beside its peers. `./run bench` runs everything; README.md has the figures."""
