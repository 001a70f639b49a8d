Rails.application.routes.draw do
  resources :notes, only: %i[index show create]
  get "jobs", to: "notes#jobs"
  get "broken", to: "notes#broken"
end
