// Package report draws what a run left behind for people: report.html, one page
// that needs no network and no script, and a model card in Markdown.
//
// Everything in a report may have been written by others (documents, prompts,
// names), so nothing reaches the page but through html/template or an escape.
// Charts are plain SVG.
//
// Nothing is judged or computed anew here: figures come from the run's own
// files.
package report
