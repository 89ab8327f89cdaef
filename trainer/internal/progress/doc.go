// Package progress tells how far a training is: on the terminal, as the file
// progress.json, and to a Kubeflow Trainer status server.
//
// The document has the names of Kubeflow's KEP-2779 (status.trainerStatus). A
// sink that fails says so once and never breaks the training.
//
// It does not keep history: that is loss_history.csv of package train.
package progress
