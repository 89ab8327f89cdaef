package hf

import "github.com/trainyard/trainyard/trainer/internal/gpt"

// configJSON has the keys of transformers' GPT2Config, sorted as it sorts them,
// that differ from its defaults or describe the model.
type configJSON struct {
	ActivationFunction string   `json:"activation_function"`
	Architectures      []string `json:"architectures"`
	AttnPdrop          float32  `json:"attn_pdrop"`
	BosTokenID         *int32   `json:"bos_token_id"`
	EmbdPdrop          float32  `json:"embd_pdrop"`
	EosTokenID         *int32   `json:"eos_token_id"`
	InitializerRange   float32  `json:"initializer_range"`
	LayerNormEpsilon   float32  `json:"layer_norm_epsilon"`
	ModelType          string   `json:"model_type"`
	NEmbd              int      `json:"n_embd"`
	NHead              int      `json:"n_head"`
	NInner             *int     `json:"n_inner"` // null means 4*n_embd
	NLayer             int      `json:"n_layer"`
	NPositions         int      `json:"n_positions"`
	ReorderAndUpcast   bool     `json:"reorder_and_upcast_attn"`
	ResidPdrop         float32  `json:"resid_pdrop"`
	ScaleByLayer       bool     `json:"scale_attn_by_inverse_layer_idx"`
	ScaleAttnWeights   bool     `json:"scale_attn_weights"`
	TieWordEmbeddings  bool     `json:"tie_word_embeddings"`
	TorchDType         string   `json:"torch_dtype"`
	UseCache           bool     `json:"use_cache"`
	VocabSize          int      `json:"vocab_size"`
}

func newConfigJSON(c gpt.Config, opts SaveOptions) configJSON {
	dtype, _ := torchDType(opts.DType) // checked by save
	out := configJSON{
		ActivationFunction: string(c.Activation),
		Architectures:      []string{"GPT2LMHeadModel"},
		AttnPdrop:          c.AttnDropout,
		BosTokenID:         opts.EndOfText,
		EmbdPdrop:          c.EmbdDropout,
		EosTokenID:         opts.EndOfText,
		InitializerRange:   0.02,
		LayerNormEpsilon:   c.Epsilon,
		ModelType:          "gpt2",
		NEmbd:              c.Channels,
		NHead:              c.Heads,
		NLayer:             c.Layers,
		NPositions:         c.BlockSize,
		ResidPdrop:         c.ResidDropout,
		ScaleAttnWeights:   true,
		TieWordEmbeddings:  true,
		TorchDType:         dtype,
		UseCache:           true,
		VocabSize:          c.VocabSize,
	}
	if c.Inner != 4*c.Channels {
		out.NInner = &c.Inner
	}
	return out
}

// generationConfigJSON is what transformers otherwise derives with a warning.
type generationConfigJSON struct {
	FromModelConfig bool   `json:"_from_model_config"`
	BosTokenID      *int32 `json:"bos_token_id,omitempty"`
	EosTokenID      *int32 `json:"eos_token_id,omitempty"`
}

func newGenerationConfigJSON(opts SaveOptions) generationConfigJSON {
	return generationConfigJSON{FromModelConfig: true, BosTokenID: opts.EndOfText, EosTokenID: opts.EndOfText}
}

// tokenizerConfigJSON makes transformers decode what we decode: without it, it
// drops spaces before punctuation and adds its own end-of-text token to a
// vocabulary that has none.
type tokenizerConfigJSON struct {
	AddPrefixSpace bool    `json:"add_prefix_space"`
	BosToken       *string `json:"bos_token"`
	CleanUpSpaces  bool    `json:"clean_up_tokenization_spaces"`
	EosToken       *string `json:"eos_token"`
	ModelMaxLength int     `json:"model_max_length"`
	TokenizerClass string  `json:"tokenizer_class"`
	UnkToken       *string `json:"unk_token"`
}

func newTokenizerConfigJSON(c gpt.Config, opts SaveOptions) tokenizerConfigJSON {
	out := tokenizerConfigJSON{ModelMaxLength: c.BlockSize, TokenizerClass: "GPT2TokenizerFast"}
	if opts.EndOfText != nil {
		text := EndOfText
		out.BosToken, out.EosToken, out.UnkToken = &text, &text, &text
	}
	return out
}
