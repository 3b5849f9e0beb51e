-- require('ampc').setup({ command = 'ampc' }): starts `ampc lsp` for models of ampc (Neovim 0.7 or later).
local M = {}

local function start(command)
  local file = vim.api.nvim_buf_get_name(0)
  local config = { name = 'ampc', cmd = { command, 'lsp' }, root_dir = vim.fn.fnamemodify(file, ':p:h') }
  if vim.lsp.start then
    vim.lsp.start(config)
  else -- Neovim 0.7: one server for all buffers
    M.client = M.client and vim.lsp.get_client_by_id(M.client) and M.client or vim.lsp.start_client(config)
    vim.lsp.buf_attach_client(0, M.client)
  end
end

function M.setup(options)
  local command = options and options.command or 'ampc'
  vim.api.nvim_create_autocmd('FileType', { pattern = 'amp', callback = function() start(command) end })
end

return M
