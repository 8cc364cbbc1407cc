"""Reading and writing of array elements selected by indices, masks or conditions."""
