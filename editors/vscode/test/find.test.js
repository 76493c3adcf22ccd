"use strict";
const test = require("node:test");
const assert = require("node:assert");
const fs = require("fs");
const path = require("path");
const { find, candidates, serverArguments } = require("../find");

test("the setting comes first, then the project's own environment, then the path", () => {
  const order = candidates(["/p"], "/my/troth", { PATH: "/usr/bin" }, "linux");
  assert.deepStrictEqual(order, ["/my/troth", "/p/.venv/bin/troth", "/p/venv/bin/troth", "/usr/bin/troth"]);
});

test("what does not exist is passed over", () => {
  assert.strictEqual(find(["/p"], "", { PATH: "/usr/bin" }, (one) => one === "/usr/bin/troth"), "/usr/bin/troth");
  assert.strictEqual(find(["/p"], "", { PATH: "" }, () => false), null);
});

test("a log is asked for only if it is set", () => {
  assert.deepStrictEqual(serverArguments(""), ["lsp"]);
  assert.deepStrictEqual(serverArguments("/tmp/l"), ["lsp", "--log", "/tmp/l"]);
});

test("the manifest names files that are there, and every setting of the server", () => {
  const folder = path.join(__dirname, "..");
  const manifest = JSON.parse(fs.readFileSync(path.join(folder, "package.json"), "utf8"));
  assert.ok(fs.existsSync(path.join(folder, manifest.main)));
  assert.ok(fs.existsSync(path.join(folder, manifest.icon)));
  const settings = Object.keys(manifest.contributes.configuration.properties);
  for (const name of ["select", "ignore", "confidence", "python", "diagnostics", "lens", "inlay"]) {
    assert.ok(settings.includes(`troth.${name}`), name);
  }
});
