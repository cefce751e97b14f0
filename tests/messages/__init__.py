"""One bad call for every public function that can be called badly."""
