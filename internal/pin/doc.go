// Package pin ends a build: it reads the lifecycle's report, asks the registry for
// what was pushed, requires that both agree and that the image is the planned one,
// gives it its final tag, and writes the results that later tasks and Tekton Chains
// read.
//
// Until all of that holds, the final tag stays what it was.
package pin
