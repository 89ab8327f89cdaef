// Package store keeps objects (corpora, runs, models, pointers) under keys,
// in a directory (file://) or in a bucket (s3://), behind one small interface.
//
// What both implementations promise:
//
//   - an object is there whole or not at all, whatever crashes;
//   - every upload is checked afterwards (size and SHA-256), every download
//     while it streams; memory does not grow with the object;
//   - PutIf has exactly one winner, across processes and machines;
//   - ErrNotFound means that the store itself said so. A store that is down,
//     denied, not mounted or a bucket that does not exist is another error,
//     so that a caller that treats "not found" as "first time" fails closed.
//
// It is not a cache and not a file system: there is no delete, no append and
// no rename. What the objects mean is the business of package registry.
package store
