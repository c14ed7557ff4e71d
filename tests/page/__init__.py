"""Tests of the page in Chromium: a package, so that the browser ends with its last test."""
