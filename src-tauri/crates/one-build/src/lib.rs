//! Only a manifest: features of dependencies that rooms share.
