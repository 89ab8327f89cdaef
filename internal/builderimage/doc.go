// Package builderimage reads what a Cloud Native Buildpacks builder says of
// itself: users, lifecycle, interfaces, run images, buildpacks, Go versions. It
// asks the registry for exactly the image that a build will run.
//
// It does not decide whether a builder fits a project: package plan does.
package builderimage
