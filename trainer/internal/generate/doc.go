// Package generate continues a prompt token by token: it picks tokens from a
// decoder's logits and hands the text on as it becomes certain.
//
// It knows neither model nor tokenizer, only the two small interfaces that it
// needs of them.
package generate
