-- Neovim without a window as a client of `ampc lsp`, started by editors/vim/lua/ampc.lua:
--     nvim --headless -u NONE -c 'luafile ...'; AMPC: the server, MODELS (one a line), TYPED: what is opened
-- A line "pass WHAT" or "FAIL WHAT: why" for each check.
local function check(what, good, why)
  io.stdout:write(good and ('pass Neovim: ' .. what) or ('FAIL Neovim: ' .. what .. ': ' .. vim.inspect(why)), '\n')
end

local function wait(condition) return vim.wait(10000, condition, 10) end

local function ask(client, method, params)
  local answer = client.request_sync(method, params, 10000, 0)
  return answer and answer.result
end

local function text_document() return { uri = vim.uri_from_bufnr(0) } end

local function open(path)
  vim.cmd('edit! ' .. vim.fn.fnameescape(path))
  vim.cmd('filetype detect')
  check(path .. ' is of type amp', vim.bo.filetype == 'amp', vim.bo.filetype)
  wait(function() return next(vim.lsp.buf_get_clients(0)) ~= nil end)
  local _, client = next(vim.lsp.buf_get_clients(0))
  return client
end

-- The first name that has a hint: what hover says of it holds the type.
local function check_model(path)
  local client = open(path)
  if not client then return check(path .. ' has a server', false) end
  local hints = ask(client, 'textDocument/inlayHint', {
    textDocument = text_document(),
    range = { start = { line = 0, character = 0 }, ['end'] = { line = 100000, character = 0 } },
  })
  local is_model = vim.fn.search('^model ', 'nw') > 0
  check(path .. ' has hints', hints and (#hints > 0 or not is_model), hints)
  check(path .. ' has no errors', #vim.diagnostic.get(0, { severity = vim.diagnostic.severity.ERROR }) == 0,
    vim.diagnostic.get(0))
  for _, hint in ipairs({ hints and hints[1] }) do
    local hover = ask(client, 'textDocument/hover', {
      textDocument = text_document(),
      position = { line = hint.position.line, character = hint.position.character - 1 },
    })
    local type = hint.label:sub(3):gsub(' or .*', '')
    check(path .. ' has a hover', hover and hover.contents.value:find(type, 1, true), hover)
  end
end

local function check_typing(path)
  open(path)
  wait(function() return #vim.diagnostic.get(0) == 0 end)
  vim.fn.append(vim.fn.search('^model '), '    wrong = relu(nothing)')
  check('typing an error shows it', wait(function() return #vim.diagnostic.get(0) > 0 end), {})
  local shown = vim.diagnostic.get(0)[1]
  check('at its place', shown and vim.fn.getline(shown.lnum + 1):sub(shown.col + 1, shown.end_col) == 'nothing', shown)
  check('with what is wrong', shown and shown.message:find("there is no 'nothing' here", 1, true), shown)
  vim.cmd('undo')
  check('undoing it ends it', wait(function() return #vim.diagnostic.get(0) == 0 end), vim.diagnostic.get(0))
  vim.fn.search('relu(')
  vim.lsp.buf.hover()
  check('hover opens a window', wait(function() return #vim.api.nvim_list_wins() == 2 end), vim.api.nvim_list_wins())
end

-- Neovim 0.10 and later show hints by themselves.
local function check_shown_hints(path)
  if not vim.lsp.inlay_hint then return end
  open(path)
  vim.lsp.inlay_hint.enable()
  local function hints() return vim.lsp.inlay_hint.get({ bufnr = 0 }) end
  check('hints are shown', wait(function() return #hints() > 0 end), hints())
  local function is_h(hint) return hint.inlay_hint.label:find('f16[N, 512]', 1, true) end
  check('with shape and dtype', vim.iter(hints()):any(is_h), hints())
end

local function run()
  vim.opt.runtimepath:append(vim.fn.getcwd() .. '/editors/vim')
  vim.opt.swapfile = false
  vim.cmd('filetype plugin on')
  vim.cmd('syntax on')
  require('ampc').setup({ command = vim.env.AMPC })
  local models = vim.split(vim.trim(vim.env.MODELS), '\n')
  for _, path in ipairs(models) do check_model(path) end
  check_typing(vim.env.TYPED)
  check_shown_hints(vim.env.TYPED)
  check('a keyword is highlighted',
    vim.fn.synIDattr(vim.fn.synID(vim.fn.search('^model '), 1, 1), 'name') == 'ampDeclaration', vim.b.current_syntax)
end

local good, why = pcall(run)
check('the script ends', good, why)
vim.cmd('qall!')
