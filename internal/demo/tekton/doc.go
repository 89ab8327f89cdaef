// Package tekton renders the manifests that install Tekton Pipelines and Triggers
// from the projects' own config/ folders, as their release does: every
// ko://IMPORTPATH becomes an image by digest, and the label "devel" the version.
// On top come the settings that a namespace with the restricted Pod Security
// Standard needs. It builds no image and talks to no cluster.
package tekton
