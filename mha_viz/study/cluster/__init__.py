"""A study on many processes or machines, by Dask."""
