// Package registryclient is how yard talks to image registries: plain http only to
// hosts that somebody listed, credentials from docker's configuration, and every
// failure a sentence that names the image and the remedy.
//
// It wraps go-containerregistry, whose guesses about local names it overrules. It
// does not build or change images.
package registryclient
