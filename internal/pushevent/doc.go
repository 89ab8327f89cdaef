// Package pushevent makes and sends a push as a forge sends it: from a git repository
// on this machine, in the shape of GitHub's, GitLab's or Gitea's push event, signed
// with the secret that the listener knows. Platform teams see with it whether their
// listener works, and a plain git server becomes one that tells of its pushes.
//
// It decides nothing about runs: what becomes of an event is the listener's business,
// and its answer says only that the event was received.
package pushevent
