// Reads a JSON list of texts and writes the list of their token ids by npm's
// gpt-3-encoder, whose directory is the first argument.
const { encode } = require(require("path").resolve(process.argv[2], "index.js"));
const texts = JSON.parse(require("fs").readFileSync(0, "utf-8"));
console.log(JSON.stringify(texts.map((text) => encode(text))));
