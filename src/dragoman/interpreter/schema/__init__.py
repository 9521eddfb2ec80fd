"""Tool schemas: what each target takes, and how arguments come back."""
