"""The languages we speak, each a folder of its own."""
