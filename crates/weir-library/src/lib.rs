//! The standard functions: http, files, image, text.
