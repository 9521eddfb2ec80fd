"""JSON Schemas as the model reads them: leniently, merged, with their references followed; and strictly, as judges."""
