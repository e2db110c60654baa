"""The served resources, and the scheme that contains them."""
