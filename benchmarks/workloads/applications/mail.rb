# What does a mail parser cost? Headers, addresses, encodings, parts, by generated state machines.
require_relative "../../packages"
VMTraceBench.with_packages("mail", "mini_mime", "net-imap", "net-pop", "net-smtp") { require "mail" }

TEXT = <<~MAIL.gsub("\n", "\r\n").freeze
  From: "A Sender" <sender@example.org>
  To: One <one@example.org>, two@example.org, "Three, T." <three@example.org>
  Subject: =?UTF-8?Q?Gr=C3=BC=C3=9Fe?= and more
  Date: Thu, 01 Jan 2026 12:00:00 +0100
  Message-ID: <1@example.org>
  MIME-Version: 1.0
  Content-Type: multipart/alternative; boundary=frontier

  --frontier
  Content-Type: text/plain; charset=UTF-8
  Content-Transfer-Encoding: quoted-printable

  Some text =3D more
  --frontier
  Content-Type: text/html; charset=UTF-8
  Content-Transfer-Encoding: base64

  PGI+U29tZSB0ZXh0PC9iPg==
  --frontier--
MAIL

VMTraceBench.iterate do
  10.times do
    mail = Mail.new(TEXT)
    mail.to.size == 3 && mail.parts.size == 2 && mail.parts[1].decoded == "<b>Some text</b>" or raise
    mail.subject.size == 14 && mail.to_s.size > 500 or raise mail.subject
  end
end
