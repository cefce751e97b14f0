"""One bad call for every public function that can raise an error."""
