"""The neutral language: values every dialect can be read into and written from.

Rules of this room: frozen values only, no I/O, nothing imported from the rest of the package.
"""
