require 'openssl'
require 'uri'

def secured_key(parent, user, valid_until)
  parameters = URI.encode_www_form(userToken: user, validUntil: valid_until)
  [OpenSSL::HMAC.hexdigest('SHA256', parent, parameters) + parameters].pack('m0')
end
