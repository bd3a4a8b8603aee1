"""A study on many processes or machines, with Dask."""
